#pragma once
#include <vector>
std::vector<double> reference(const std::vector<float> &x, const std::vector<float> &gain,
    const std::vector<float> &qkv, const std::vector<float> &proj, const std::vector<float> &up,
    const std::vector<float> &down);
