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
