#!/bin/sh
# Puts a backup in the place of the data of Postgres, which must not run; Postgres then reads the archived log, to its end or to the given time:
#   docker compose … run --rm --no-deps postgres restore 20261124T040000Z '2026-11-24 12:30:00+00'
# The previous data are kept beside it, in a folder that ends with .before- and the time.
set -eu
base=/backup/base/$1/base.tar.gz
if [ ! -f "$base" ]; then
  echo "There is no backup $1" >&2
  exit 1
fi
if [ -f "$PGDATA/postmaster.pid" ]; then
  echo 'Postgres runs, or was killed: stop it, or delete postmaster.pid if there is none' >&2
  exit 1
fi
if [ -d "$PGDATA" ]; then mv "$PGDATA" "$PGDATA.before-$(date -u +%Y%m%dT%H%M%SZ)"; fi
mkdir -p "$PGDATA"
tar -xzf "$base" -C "$PGDATA"
# Also the empty time: a backup of a server that was restored contains the one of that restore.
cat >> "$PGDATA/postgresql.auto.conf" <<SETTINGS
restore_command = 'cp /backup/wal/%f %p'
recovery_target_time = '${2:-}'
recovery_target_action = 'promote'
SETTINGS
touch "$PGDATA/recovery.signal"
# A copy of BACKUPS may belong to another user. Postgres takes a file that it cannot read for the end of the log.
chown -R postgres:postgres "$PGDATA" /backup
chmod 700 "$PGDATA"
