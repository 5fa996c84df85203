#!/bin/sh
# Takes a base backup of Postgres into BACKUPS, where the write-ahead log is archived, too. Then deletes the backups that are older than a number of days (30),
# and the log that only they need:
#   docker compose … exec -T --user postgres postgres back-up 30
set -eu
days=${1:-30}
name=$(date -u +%Y%m%dT%H%M%SZ)
backups=${BACKUP_FOLDER:-/backup}
cd "$backups/base"
rm -rf ./*.new
touch begun.new
pg_basebackup --username postgres --no-password --pgdata "$name.new" --format tar --gzip --wal-method fetch --checkpoint fast
# Its time is that of its beginning: the log that was archived since then may be needed after it.
touch -r begun.new "$name.new"
mv "$name.new" "$name"
rm begun.new
find . -mindepth 1 -maxdepth 1 -mtime "+$days" -exec rm -r '{}' +
# A backup contains the log of its beginning.
oldest=$(ls | head -n 1)
find "$backups/wal" -type f ! -newer "$oldest" -exec rm '{}' +
echo "$name"
