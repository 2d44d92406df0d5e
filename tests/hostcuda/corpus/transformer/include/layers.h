#pragma once
#include "tensor.h"
void layer_norm(const Tensor &x, const Tensor &gain, Tensor &y, int rows, int cols);
void linear(const Tensor &x, const Tensor &w, Tensor &y, int rows, int in, int out);
void attention(const Tensor &qkv, Tensor &y);
void gelu(Tensor &x);
void add(Tensor &x, const Tensor &y);
