// A user's program that links the reader of curve files: a damaged text must be refused.
#include "isofold/curves.hpp"

int main() {
  isofold::CalibrationCurves curves;
  const isofold::Status status = isofold::CalibrationCurves::parse(R"({"format": "isofold-curve"})", &curves);
  return status.ok() || status.message.empty() ? 1 : 0;
}
