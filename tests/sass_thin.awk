# awk -v kernels='ampi_k_cast ampi_k_update<0>' -f sass_thin.awk amp_cuda.cuh: its device code with these kernels alone, which nvcc compiles in a
# tenth of the time. Device functions that none of them calls are left out by nvcc.
BEGIN {
    count = split(kernels, kernel, " ")
    for (i = 1; i <= count; i++) {
        name = kernel[i]
        sub(/<.*/, "", name)
        wanted[name]
    }
    print "#define AMP_CUDA_IMPLEMENTATION"
}
/^\/\* ==== >>cuda-host / { exit }
/^template </ { # a kernel's, or not
    before = before $0 "\n"
    next
}
/^static __global__/ {
    inside = 1
    name = ""
}
inside {
    if (name == "" && match($0, /ampi_k_[a-z0-9_]+\(/)) name = substr($0, RSTART, RLENGTH - 1)
    text = text $0 "\n"
    if (!/^}/) next
    if (name in wanted) printf "%s%s", before, text
    inside = 0
    before = text = ""
    next
}
{
    printf "%s%s\n", before, $0
    before = ""
}
END { # of the header's extern "C++" and of its #if; then what makes each of them
    print "}\n#endif\nextern const void *const thin_kernels[];\nconst void *const thin_kernels[] = {"
    for (i = 1; i <= count; i++) print "    (const void *)" kernel[i] ","
    print "};"
}
