# Functions of the other scripts, which source this file.

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Succeeds if this user can install Debian packages.
can_apt() {
    [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null
}

# Installs the first of the named packages that this release of Debian has.
apt_install_first_of() {
    echo "${0##*/}: installing one of: $*" >&2
    apt-get update -qq >/dev/null || return 1
    local package
    for package in "$@"; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
                "$package" >/dev/null </dev/null
            return
        fi
    done
    return 1
}

# with_progress DESCRIBE COMMAND...: runs the command, whose output goes to a file. Every ten
# seconds, it prints the progress that the function DESCRIBE derives from this file. If the command
# fails, it prints the output.
with_progress() {
    local describe=$1 output pid began=$SECONDS shown=0 failed=0
    shift
    output=$(mktemp)
    "$@" >"$output" 2>&1 &
    pid=$!
    # A background process ignores Ctrl-C, so it must be killed at the end of the script.
    trap "kill $pid 2>/dev/null; rm -f '$output'" EXIT
    while sleep 1 && kill -0 "$pid" 2>/dev/null; do
        ((SECONDS - began < shown + 10)) && continue
        shown=$((SECONDS - began))
        echo "    ... $shown s: $("$describe" "$output")" >&2
    done
    wait "$pid" || failed=$?
    ((failed == 0)) || cat "$output" >&2
    trap - EXIT
    rm -f "$output"
    return "$failed"
}
