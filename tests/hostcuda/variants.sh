# variants.sh - read with "." by run.sh and hostcuda-cc.sh: the compiler and flags of each variant, and what it finds. hostcuda.mk has the
# flags from here, but for plain.
# Reads: CXX CLANGXX. Gives: cxx and variant_flags.

variant() { # NAME: 1 if there is none of that name
    case $1 in
    plain) cxx=$CXX variant_flags=-O2 ;;
    asan) cxx=$CXX variant_flags="-O1 -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow" ;;
    tsan) cxx=$CXX variant_flags="-O1 -fsanitize=thread" ;;
    msan) cxx=$CLANGXX variant_flags="-O1 -fsanitize=memory" ;; # where the memory came from costs two thirds more: FLAGS has it
    vg) cxx=$CXX variant_flags="-O1 -DHCU_VALGRIND" ;;
    *) return 1 ;;
    esac
}
finds() {
    case $1 in
    plain) echo "wrong use of CUDA, guard pages, leaks" ;;
    asan) echo "bounds, undefined behaviour, wrong use of CUDA, leaks" ;;
    tsan) echo "races" ;;
    msan | vg) echo "uninitialised reads" ;;
    esac
}
