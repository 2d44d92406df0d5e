#!/bin/sh
set -e
nvcc -O2 --use_fast_math -Xcompiler '-Wall -O3' -Xcompiler=-fno-exceptions,-DUNUSED -gencode arch=compute_80,code=sm_80 -c gelu.cu
nvcc -O2 -c -o silu.o silu.cu
g++ -O2 -c main.cpp || c++ -O2 -c main.cpp
nvcc -gencode arch=compute_80,code=sm_80 -lineinfo -cudart static -Werror all-warnings main.o gelu.o silu.o -o act -lcudart -lcublas
