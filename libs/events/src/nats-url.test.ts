import { describe, expect, it } from 'vitest';
import { faultsOfNatsUrl, parseNatsUrl } from './nats-url.ts';

const plain = { requiresTls: false, user: '', password: '' };
const ann = { requiresTls: false, user: 'ann', password: 's3cret' };

describe('a URL of NATS', () => {
  it.each([
    ['nats://A', { ...plain, servers: ['a:4222'] }],
    ['nats://a:4222,b:4223,c', { ...plain, servers: ['a:4222', 'b:4223', 'c:4222'] }],
    ['nats://a:4222, b:4222', { ...plain, servers: ['a:4222', 'b:4222'] }],
    ['nats://a:4222/,b:4222/', { ...plain, servers: ['a:4222', 'b:4222'] }],
    ['tls://a,tls://b', { ...plain, requiresTls: true, servers: ['a:4222', 'b:4222'] }],
    ['nats://token@a,b', { ...plain, user: 'token', servers: ['a:4222', 'b:4222'] }],
    ['nats://ann:s3cret@a:4222', { ...ann, servers: ['a:4222'] }],
    ['nats://ann:s3cret@a:4222,b:4222', { ...ann, servers: ['a:4222', 'b:4222'] }],
    ['nats://ann:s3cret@a,nats://ann:s3cret@b', { ...ann, servers: ['a:4222', 'b:4222'] }],
    ['nats://ann:s3cret@a,b,nats://c,d', { ...ann, servers: ['a:4222', 'b:4222', 'c:4222', 'd:4222'] }],
    ['nats://ann:s3,cret@a,b', { ...ann, password: 's3,cret', servers: ['a:4222', 'b:4222'] }],
    ['nats://ann:s3,cret@a,nats://ann:s3,cret@b', { ...ann, password: 's3,cret', servers: ['a:4222', 'b:4222'] }],
    ['nats://ann:s3%40%2C%25@a,b', { ...ann, password: 's3@,%', servers: ['a:4222', 'b:4222'] }],
    ['nats://ann:s3@cret@a,b', { ...ann, password: 's3@cret', servers: ['a:4222', 'b:4222'] }],
    ['nats://ann:s3cret@[::1]:4222,[2001:db8::5]', { ...ann, servers: ['[::1]:4222', '[2001:db8::5]:4222'] }],
  ])('can be %s', (url, address) => {
    expect(faultsOfNatsUrl(url)).toEqual([]);
    expect(parseNatsUrl(url)).toEqual(address);
  });

  const whole = 'have each server with a user as a whole URL, and "@" in a password as %40';
  const form = 'be a URL that begins with nats:// or tls://';
  it.each([
    ['ann:s3cret@a,b', form],
    ['nats://ann:s3cret@a,http://b', form],
    ['nats://ann:s3cret@a,b:port', form],
    ['nats://ann:s3cret@::1', form],
    ['nats://ann:100%s3cret@a,b', 'have its user and password percent-encoded'],
    ['nats://ann:s3cret@a,,b', 'have a host for each server'],
    ['nats://', 'have a host for each server'],
    ['nats://s3cr/et@host:4222', 'have "/", "#" and "?" in its password percent-encoded'],
    ['nats://ann:s3#cret@host:4222', form],
    ['nats://ann:s3?cret@a,b', form],
    ['nats://ann:s3cret@a,tls://b', 'have the same protocol for all servers'],
    ['nats://ann:s3cret@a,nats://ben:s3cret@b', 'have the same user and password for all servers'],
    ['nats://ann:s3cret@a,nats://ann:other@b', 'have the same user and password for all servers'],
    ['nats://a,nats://ann:s3cret@b', 'have the same user and password for all servers'],
    ['nats://ann:s3cret@a,ann:s3cret@b', whole],
    ['nats://ann:s3@cr,et@a', whole],
    ['nats://ann:s3,cr@et@a', whole],
  ])('cannot be %s, and it is not shown', (url, fault) => {
    expect(faultsOfNatsUrl(url)).toEqual([expect.stringContaining(fault)]);
    expect(() => parseNatsUrl(url)).toThrow(fault);
    expect(() => parseNatsUrl(url)).not.toThrow(/s3|ann/);
  });
});
