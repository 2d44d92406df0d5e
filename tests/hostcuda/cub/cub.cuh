#pragma once
#error "hostcuda: CUB is not supported: its blocks and warps are made of PTX (docs/hostcuda.md); thrust is"
