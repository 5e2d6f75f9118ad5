// Everything public.
#pragma once

#include "isofold/arrays.hpp"
#include "isofold/best_splits.hpp"
#include "isofold/conjugate_gradient.hpp"
#include "isofold/executor.hpp"
#include "isofold/histogram.hpp"
#include "isofold/interpolation.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/linear_maps.hpp"
#include "isofold/projection.hpp"
#include "isofold/rows.hpp"
#include "isofold/segmented.hpp"
#include "isofold/status.hpp"
