#!/usr/bin/env bash
# See to it that Spark finds Java 17 or later; install it only where nobody has to be asked.
set -euo pipefail

needed=17

java_command() {
    if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ]; then
        echo "$JAVA_HOME/bin/java"
    else
        command -v java || true
    fi
}

java_version() {
    local java
    java=$(java_command)
    if [ -n "$java" ]; then
        # `openjdk version "17.0.9" …`; up to Java 8 it was "1.8.0_…"
        "$java" -version 2>&1 |
            sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
    fi
}

has_java() {
    local version
    version=$(java_version)
    [ -n "$version" ] && [ "$version" -ge "$needed" ]
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_install() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

if has_java; then exit 0; fi

if may_install; then
    echo "Java $needed is missing: installing openjdk-$needed-jre-headless"
    as_root apt-get update -qq || true
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq "openjdk-$needed-jre-headless" >/dev/null || true
fi

if ! has_java; then
    found=$(java_version)
    echo "Spark needs Java $needed or later; found: ${found:-none}." >&2
    echo "Install a Java runtime (Debian, Ubuntu: openjdk-17-jre-headless; Fedora:" >&2
    echo "java-17-openjdk-headless; macOS: brew install openjdk@17) or set JAVA_HOME to one." >&2
    exit 1
fi
