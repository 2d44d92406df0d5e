#!/bin/sh
# usage: dist.sh VERSION DIR    `make dist`: what a release consists of, from the commit that is checked out: the whole project, the two
# headers alone, and SHA256SUMS. The same commit gives the same bytes. Nothing is made from a tree with changes.
set -eu
version=$1 out=$2 name=amp-$1
git rev-parse --verify -q HEAD >/dev/null || { echo "make dist: this is no git checkout" >&2; exit 1; }
if [ -n "$(git status --porcelain)" ]; then
    echo "make dist: the tree has changes that are not committed:" >&2
    git status --short >&2
    exit 1
fi
pack() { # FILE PATH...: of the commit
    file=$1
    shift
    git archive --format=tar --prefix="${file%.tar.gz}/" HEAD "$@" | gzip -n -9 >"$out/$file.new"
    mv "$out/$file.new" "$out/$file"
}
mkdir -p "$out"
pack "$name.tar.gz" .
pack "$name-headers.tar.gz" amp.h amp_cuda.cuh LICENSE
(cd "$out" && sha256sum "$name.tar.gz" "$name-headers.tar.gz" >SHA256SUMS && cat SHA256SUMS)
