#!/bin/sh
# Creates the certificates for compose.production.yaml in a folder, or renews them with the same authority:
#   deploy/compose/create-certificates.sh /etc/scheduling/certificates
# They are for the names of the services, and valid for 397 days. Delete authority.* first to replace the authority, too.
set -eu
umask 077
folder=${1:?"usage: $0 FOLDER"}
mkdir -p "$folder"
cd "$folder"

if [ ! -f authority.key ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=scheduling $(date -u +%Y-%m-%dT%H:%M:%SZ)" \
    -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign -keyout authority.key -out authority.crt 2>/dev/null
fi

for name in gateway page identity calendar customer notification webhook admin postgres nats; do
  new=$(mktemp -d)
  printf 'subjectAltName=DNS:%s\nbasicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n' "$name" > "$new/extensions"
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" -keyout "$new/tls.key" -out "$new/request" 2>/dev/null
  openssl x509 -req -in "$new/request" -CA authority.crt -CAkey authority.key -set_serial "0x$(openssl rand -hex 16)" -days 397 -extfile "$new/extensions" -out "$new/tls.crt" 2>/dev/null
  cp authority.crt "$new/ca.crt"
  # The folder above keeps others out. In the containers, the files are read by users whom this machine does not know.
  mkdir -p "$name"
  chmod 755 "$name"
  for file in tls.crt tls.key ca.crt; do
    chmod 644 "$new/$file"
    mv "$new/$file" "$name/$file"
  done
  rm -r "$new"
done
