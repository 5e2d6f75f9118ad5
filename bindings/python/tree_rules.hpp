// What Python says of features and rules, as the library takes it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "isofold/best_splits.hpp"

namespace isofold::python {

// Records of 8 bytes: the number of bins, then whether categorical, whether with missing values, monotone.
std::vector<FeatureRules> unpack_feature_rules(const std::uint8_t* bytes, std::size_t size,
                                               std::int32_t features);
SplitRules unpack_rules(const nanobind::dict& rules);

}  // namespace isofold::python
