#include "cpu/counters.hpp"

namespace isofold::cpu {

Counters& counters() {
  static Counters instance;
  return instance;
}

}  // namespace isofold::cpu
