#!/bin/sh
# Starts the entrypoint of the Postgres image, as root like that one, or restores a backup.
set -eu
if [ "$1" = restore ]; then
  shift
  exec restore "$@"
fi
install -d -o postgres -g postgres -m 700 /tmp/certificates /backup /backup/wal /backup/base
install -o postgres -g postgres -m 600 /certificates/tls.crt /certificates/tls.key /tmp/certificates
exec docker-entrypoint.sh "$@"
