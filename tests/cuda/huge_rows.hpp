// Rows and batches of more than 2^31 elements on a GPU, checked block by block in exact integers.
#pragma once

namespace isofold_test {

// A row of 3e9 elements, one of 1e10, and a ragged batch of 2^31 + 5, all float32. What the device has no
// memory for is left out, and said. Returns the number of failures.
int check_huge_rows();

}  // namespace isofold_test
