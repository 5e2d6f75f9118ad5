// Everything public.
#pragma once

#include "isofold/arrays.hpp"
#include "isofold/best_splits.hpp"
#include "isofold/executor.hpp"
#include "isofold/histogram.hpp"
#include "isofold/interpolation.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/rows.hpp"
#include "isofold/status.hpp"
