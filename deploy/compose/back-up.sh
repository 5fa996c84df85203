#!/bin/sh
# Takes a base backup of Postgres into BACKUPS, where the write-ahead log is archived, too. Then deletes the backups that are older than a number of days (30),
# and the log that only they need:
#   docker compose … exec -T --user postgres postgres back-up 30
set -eu
days=${1:-30}
name=$(date -u +%Y%m%dT%H%M%SZ)
cd /backup/base
rm -rf ./*.new
pg_basebackup --username postgres --no-password --pgdata "$name.new" --format tar --gzip --wal-method fetch --checkpoint fast
mv "$name.new" "$name"
find . -mindepth 1 -maxdepth 1 -mtime "+$days" -exec rm -r '{}' +
# A backup contains the log up to its end.
oldest=$(ls | head -n 1)
find /backup/wal -type f ! -newer "$oldest" -delete
echo "$name"
