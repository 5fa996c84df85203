import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSettings, UsageError, withCertificatesOf } from './config.ts';
import { repositoryRoot } from '@scheduling/stack';

describe('readSettings', () => {
  it('has defaults for everything', () => {
    expect(readSettings({ fresh: false }, {})).toMatchObject({
      port: 8080,
      dataDir: join(repositoryRoot, '.data'),
      fresh: false,
      logLevel: 'info',
      durable: true,
      given: { databases: {} },
    });
  });

  it('reads the given values and passes on nothing else from the environment', () => {
    const settings = readSettings(
      { fresh: true },
      {
        SCHEDULING_PORT: '9090',
        SCHEDULING_DATA: '/srv/data',
        POSTGRES_FSYNC: 'off',
        DATABASE_URL_CALENDAR: 'postgres://db/calendar',
        NATS_URL: 'nats://broker:4222',
        SMTP_URL: 'smtp://mail:25',
        PATH: '/bin',
        SECRET: 'of somebody else',
      },
    );
    expect(settings).toEqual({
      port: 9090,
      dataDir: '/srv/data',
      fresh: true,
      watch: false,
      logLevel: 'info',
      durable: false,
      given: { databases: { calendar: 'postgres://db/calendar' }, nats: 'nats://broker:4222', smtp: 'smtp://mail:25' },
      inherited: { PATH: '/bin' },
    });
  });

  it('gives each process its own certificate, if the paths say so', () => {
    const files = (folder: string) => ({
      GRPC_TLS_CERT_FILE: `${folder}/tls.crt`,
      GRPC_TLS_KEY_FILE: `${folder}/tls.key`,
      GRPC_TLS_CA_FILE: '/ca.crt',
    });
    const settings = readSettings({ fresh: false }, files('/{service}'));
    expect(settings.certificates).toEqual({
      certificate: '/admin/tls.crt',
      key: '/admin/tls.key',
      authorities: '/ca.crt',
    });
    expect(withCertificatesOf('calendar', settings.inherited)).toEqual(files('/calendar'));
  });

  it('refuses a database of several hosts', () => {
    const attempt = (): unknown => readSettings({ fresh: false }, { DATABASE_URL_CALENDAR: 'postgres://a,b/calendar' });
    expect(attempt).toThrow('DATABASE_URL_CALENDAR must name one host');
  });

  it('accepts several servers of NATS', () => {
    const nats = 'nats://ann:s3cret@one:4222,two:4222';
    expect(readSettings({ fresh: false }, { NATS_URL: nats }).given.nats).toBe(nats);
  });

  it('reports invalid values, with exit code 2', () => {
    const attempt = (): unknown => readSettings({ fresh: false }, { SCHEDULING_PORT: 'http', NATS_URL: 'localhost' });
    expect(attempt).toThrow(/SCHEDULING_PORT must be[^]*NATS_URL must be/);
    expect(attempt).toThrow(expect.objectContaining({ name: UsageError.name, exitCode: 2 }) as Error);
  });
});
