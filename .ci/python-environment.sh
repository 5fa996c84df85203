# Makes an environment in $1/venv and puts it first on the PATH. Without Python 3.11 or newer, or without PyPI, it says that $2 was not tested, and fails.
python_environment() {
  if ! python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
    echo "no python3 of 3.11 or newer with venv on the PATH: $2 was not tested"
    return 1
  fi
  rm -rf "$1"
  if ! python3 -m venv "$1/venv"; then
    echo "python3 cannot make an environment: $2 was not tested"
    return 1
  fi
  export PIP_DISABLE_PIP_VERSION_CHECK=1 PATH="$1/venv/bin:$PATH"
  if ! pip download --quiet --retries 1 --no-deps --dest "$1" pip 2> /dev/null; then
    echo "PyPI cannot be reached: $2 was not tested"
    return 1
  fi
}
