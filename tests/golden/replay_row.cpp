#include "replay_row.h"

namespace skillet::golden {

std::string_view replay_class_name(ReplayClass result) {
  switch (result) {
    case ReplayClass::exact: return "exact";
    case ReplayClass::within_1: return "within_1";
    case ReplayClass::worse: return "worse";
    case ReplayClass::not_comparable: return "not_comparable";
    case ReplayClass::fault: return "fault";
  }
  return "?";
}

}  // namespace skillet::golden
