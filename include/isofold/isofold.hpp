// Everything public.
#pragma once

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/interpolation.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/projection.hpp"
#include "isofold/rows.hpp"
#include "isofold/status.hpp"
