# Read by bash before a command whose last folder is wanted: when the shell exits, it says on a descriptor where it is.
# The command itself stays as it was written, and so does its exit code. Nothing of this is left in its environment.
trap "{ set +x; builtin pwd -P >&${CARRIED_FOLDER_DESCRIPTOR:-2}; } 2>/dev/null" EXIT
unset BASH_ENV CARRIED_FOLDER_DESCRIPTOR
