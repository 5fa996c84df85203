#!/bin/sh
# Stores a file of the write-ahead log in BACKUPS: archive_command='archive-wal %p %f'. Postgres repeats it until it succeeds, after a crash also for a file that
# is stored already. One with the same name and other content is never replaced: it belongs to another server.
set -eu
archive=${WAL_ARCHIVE:-/backup/wal}
stored=$archive/$2
if [ -f "$stored" ]; then
  cmp "$1" "$stored"
else
  cp "$1" "$archive/.$2"
  sync "$archive/.$2"
  mv "$archive/.$2" "$stored"
fi
sync "$stored" "$archive"
