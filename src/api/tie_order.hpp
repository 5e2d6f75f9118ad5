// Tied observations share one value. With the elements of a group ordered by falling value, the group's inner
// points lie on or above its chord, so none of them is a hull vertex, and the untied solver gives the pooled
// answer.
#pragma once

#include <vector>

#include "isofold/isotonic.hpp"

namespace isofold::api {

// The problem with each group's elements in that order. The copies live as long as this object.
class TieOrder {
 public:
  explicit TieOrder(const IsotonicProblem& problem);

  [[nodiscard]] const IsotonicProblem& problem() const { return problem_; }

 private:
  std::vector<double> values_;
  std::vector<double> weights_;
  IsotonicProblem problem_;
};

}  // namespace isofold::api
