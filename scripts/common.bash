# What the other scripts share. Sourced, not run.

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# True where this user may install Debian packages.
can_apt() {
    [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null
}

# Installs the first of the named Debian packages that this release has.
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

# telling HOW COMMAND...: runs it; every ten seconds, says what HOW makes of its output so far. The
# output itself is shown where it fails.
telling() {
    local how=$1 output pid second failed=0
    shift
    output=$(mktemp)
    "$@" >"$output" 2>&1 &
    pid=$!
    # A background process does not hear Ctrl-C.
    trap "kill $pid 2>/dev/null; rm -f '$output'" EXIT
    for ((second = 1; ; second++)); do
        sleep 1
        kill -0 "$pid" 2>/dev/null || break
        ((second % 10)) || echo "    ... $second s: $("$how" "$output")" >&2
    done
    wait "$pid" || failed=$?
    ((failed == 0)) || cat "$output" >&2
    trap - EXIT
    rm -f "$output"
    return "$failed"
}
