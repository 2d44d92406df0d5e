/* execution_policy.h - in place of NVIDIA's, whose algorithms are kernels of CUB. */
#pragma once
#include <thrust/execution_policy.h>
