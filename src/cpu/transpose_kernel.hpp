// Included once for each instruction set by the files of kernels, hence without a guard.

// rows[r][c] becomes rows[c][r].
inline __attribute__((always_inline)) void transpose(Doubles* rows) {
  Doubles pairs[kLanes];
  for (int r = 0; r < kLanes; r += 2) {
    pairs[r] = __builtin_shufflevector(rows[r], rows[r + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    pairs[r + 1] = __builtin_shufflevector(rows[r], rows[r + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  Doubles fours[kLanes];
  for (int half = 0; half < kLanes; half += 4) {
    for (int c = 0; c < 2; ++c) {
      const Doubles& left = pairs[half + c];
      const Doubles& right = pairs[half + 2 + c];
      fours[half + c] = __builtin_shufflevector(left, right, 0, 1, 8, 9, 4, 5, 12, 13);
      fours[half + 2 + c] = __builtin_shufflevector(left, right, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int c = 0; c < 4; ++c) {
    rows[c] = __builtin_shufflevector(fours[c], fours[4 + c], 0, 1, 2, 3, 8, 9, 10, 11);
    rows[4 + c] = __builtin_shufflevector(fours[c], fours[4 + c], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
