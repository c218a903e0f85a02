#!/bin/sh
# Names, in one message, every tool that the build needs and this machine lacks.
missing=""
packages=""
need() { # command, Debian package
    command -v "$1" >/dev/null 2>&1 || { missing="$missing $1"; packages="$packages $2"; }
}
need cc gcc
need make make
need python3 python3
if ! { command -v mpicc && command -v mpiexec; } >/dev/null 2>&1 && command -v python3 >/dev/null 2>&1; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || { missing="$missing python3-venv"; packages="$packages python3-venv"; }
fi
printf '#include <stdlib.h>\n' | cc -E - >/dev/null 2>&1 || { missing="$missing stdlib.h"; packages="$packages libc6-dev"; }
if [ -n "$missing" ]; then
    echo "Pioscope needs:$missing" >&2
    echo "On Debian or Ubuntu: apt-get install$packages" >&2
fi
least=90
if command -v python3 >/dev/null 2>&1 && ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "Pioscope needs Python 3.10 or newer (found: $(python3 --version 2>&1)), as python3 on the PATH." >&2
    missing="$missing python"
fi
minor=$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
if [ -z "$minor" ] || [ "$minor" -lt "$least" ]; then
    echo "Pioscope needs Rust 1.$least or newer (found: $(cargo --version 2>/dev/null || echo none)): install it with rustup, as an ordinary user." >&2
    missing="$missing rust"
fi
[ -z "$missing" ]
