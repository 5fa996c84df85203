import { describe, expect, it } from 'vitest';
import { describeEnvironment, readEnvironment } from './environment.ts';

const read = (environment: NodeJS.ProcessEnv) =>
  readEnvironment(environment, (reader) => ({
    port: reader.port('PORT', 8080),
    level: reader.oneOf('LEVEL', ['debug', 'info'], 'info'),
    database: reader.url('DATABASE_URL', ['postgres:']),
    days: reader.integer('DAYS', { min: 1, max: 10 }, 3),
    ratio: reader.number('RATIO', { min: 0, max: 1 }, 1),
    name: reader.text('NAME', 'nobody'),
  }));

describe('the environment', () => {
  it('gets defaults for absent or empty variables', () => {
    expect(read({ DATABASE_URL: 'postgres://host/db', NAME: '' })).toEqual({
      port: 8080,
      level: 'info',
      database: 'postgres://host/db',
      days: 3,
      ratio: 1,
      name: 'nobody',
    });
  });

  it('is read as given', () => {
    expect(
      read({ DATABASE_URL: 'postgres://host/db', PORT: '0', LEVEL: 'debug', DAYS: '10', RATIO: '.25', NAME: 'x' }),
    ).toEqual({
      port: 0,
      level: 'debug',
      database: 'postgres://host/db',
      days: 10,
      ratio: 0.25,
      name: 'x',
    });
  });

  it('reports all errors at once, but no secrets', () => {
    const faulty = () => read({ DATABASE_URL: 'mysql://user:secret@host', PORT: '65536', LEVEL: 'loud', DAYS: '1.5' });
    expect(faulty).toThrow(/PORT .*\n.*LEVEL .*\n.*DATABASE_URL .*\n.*DAYS /);
    expect(faulty).not.toThrow(/secret/);
    expect(() => read({})).toThrow('DATABASE_URL is required');
    const unencoded = () => read({ DATABASE_URL: 'postgres://user:100%secret@host/db' });
    expect(unencoded).toThrow('DATABASE_URL must have its user and password percent-encoded');
    expect(unencoded).not.toThrow(/secret/);
  });

  it.each(['1.1', '-0.1', 'half', ' ', '1e-1', '0x1', '10%', '0,1'])('refuses %j as a number from 0 to 1', (raw) => {
    expect(() => read({ DATABASE_URL: 'postgres://host/db', RATIO: raw })).toThrow(
      `RATIO must be a number from 0 to 1, not "${raw}"`,
    );
  });

  it('is described by the configuration that reads it', () => {
    expect(describeEnvironment(read)).toEqual([
      { name: 'PORT', allowed: 'a whole number from 0 to 65535', fallback: '8080' },
      { name: 'LEVEL', allowed: 'one of debug, info', fallback: 'info' },
      { name: 'DATABASE_URL', allowed: 'a URL that begins with postgres://', fallback: undefined },
      { name: 'DAYS', allowed: 'a whole number from 1 to 10', fallback: '3' },
      { name: 'RATIO', allowed: 'a number from 0 to 1', fallback: '1' },
      { name: 'NAME', allowed: undefined, fallback: 'nobody' },
    ]);
  });
});
