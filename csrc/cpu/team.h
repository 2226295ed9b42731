// The functions that a task compiled for workers of several threads on a CPU calls (team.cpp).
#pragma once
#include "include/interface.h"

namespace atos {

const atos_named_function *team_functions();

} // namespace atos
