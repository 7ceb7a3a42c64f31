#!/usr/bin/env bash
# Build the image of envs/Containerfile without a registry, and run the smoke experiment in it:
#
#     tests/cluster/container.sh FOLDER [OPTIONS of `buildah build`]
#
# Needs Debian, root, buildah, mmdebstrap and 20 GB. The base is Debian's own Python 3.11 under the name of the official image, which has
# the same release of Debian and of Python. The experiment runs in FOLDER, which must not exist.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
mkdir "$1"
folder=$(cd "$1" && pwd)
shift
base=$(sed -n 's/^FROM //p' "$project/envs/Containerfile")
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot

if ! buildah inspect --type image "docker.io/library/$base" > /dev/null 2>&1; then
  mmdebstrap --variant=minbase --include=python3,python3-pip,ca-certificates "${base##*-}" "$folder/root.tar"
  container=$(buildah from scratch)
  buildah add -q "$container" "$folder/root.tar" /
  rm "$folder/root.tar"
  # As in the official image: `python`, and a pip that may install.
  buildah run "$container" -- sh -c 'ln -s python3 /usr/bin/python && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED'
  buildah config --env PATH=/usr/local/bin:/usr/bin:/bin "$container"
  buildah commit -q --rm "$container" "docker.io/library/$base"
fi

cd "$project"
buildah build --pull=never --network=host "$@" --file envs/Containerfile --tag specialized-heads .
cp -a Snakefile config.yaml config envs profiles resources src workflow "$folder"
container=$(buildah from --pull=never localhost/specialized-heads)
trap 'buildah rm "$container" > /dev/null' EXIT
buildah run --volume "$folder:/project" "$container" -- snakemake --cores all --configfile config/smoke.yaml
