#!/bin/sh
# Compares the contract with the newest released one (tag v*), else with the commit before.
set -eu
buf=$1
against=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || git rev-parse --verify --quiet HEAD~1 || true)
if [ -z "$against" ] || ! git cat-file -e "$against:protos/buf.yaml" 2>/dev/null; then
	echo "contract: nothing to compare with yet"
	exit 0
fi
old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
git archive "$against" protos | tar -x -C "$old"
"$buf" breaking protos --against "$old/protos"
