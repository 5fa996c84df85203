import { hasIpv6 } from '@scheduling/testing';
import { expect, it } from 'vitest';
import { startGateway } from './gateway-under-test.ts';

it('serves HTTP and metrics on the addresses of IPv4 and of IPv6 by default', async ({ skip }) => {
  skip(!hasIpv6(), 'this machine has no IPv6');
  await using gateway = await startGateway({ LISTEN_HOST: '' });
  for (const host of ['127.0.0.1', '[::1]']) {
    expect((await fetch(`http://${host}:${gateway.port}/openapi.json`)).status).toBe(200);
    expect((await fetch(`http://${host}:${gateway.metricsPort}/metrics`)).status).toBe(200);
  }
});
