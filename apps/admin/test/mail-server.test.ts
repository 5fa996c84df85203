import { createCertificateAuthority, startTestSmtp } from '@scheduling/testing';
import { expect, it } from 'vitest';
import type { System } from '../src/config.ts';
import { checkMailServer } from '../src/doctor/check-mail-server.ts';

const check = (smtp: string) =>
  checkMailServer({
    smtp,
    gateway: undefined,
    page: undefined,
    operator: 'tester',
    services: {},
    nats: undefined,
    certificates: undefined,
  } satisfies System);
/** An address of this machine that could as well be another one's. */
const elsewhere = (url: string) => url.replace('127.0.0.1', 'user:password@0.0.0.0');

it('a mail server without STARTTLS on another machine does not get the password, and the doctor says why', async () => {
  await using smtp = await startTestSmtp();
  const finding = await check(elsewhere(smtp.url));
  expect(finding).toMatchObject({
    level: 'fault',
    seen: expect.stringMatching(/^0\.0\.0\.0:\d+ cannot be used: the server offers no STARTTLS$/),
  });
  expect(finding.remedy).toContain('?requireTLS=false');
  expect(smtp.logins).toEqual([]);
});

it('a mail server that the URL allows to be without TLS is a warning', async () => {
  await using smtp = await startTestSmtp();
  const seen = expect.stringMatching(/ responds and accepts the login, and offers no TLS$/);
  expect(await check(`${elsewhere(smtp.url)}?requireTLS=false`)).toMatchObject({ level: 'warning', seen });
});

it('a mail server on this machine needs no TLS', async () => {
  await using smtp = await startTestSmtp();
  expect(await check(smtp.url)).toMatchObject({
    level: 'ok',
    seen: expect.stringMatching(/^127\.0\.0\.1:\d+ responds, without TLS on this machine$/),
  });
});

it('a mail server with STARTTLS gets the password encrypted', async () => {
  const authority = await createCertificateAuthority();
  await using smtp = await startTestSmtp({ certificate: await authority.issue('mail.example') });
  const seen = expect.stringMatching(/ responds and accepts the login, STARTTLS is offered$/);
  expect(await check(`${elsewhere(smtp.url)}?tls.rejectUnauthorized=false`)).toMatchObject({ level: 'ok', seen });
  expect(smtp.logins).toEqual([{ user: 'user', secure: true }]);
  expect(await check(elsewhere(smtp.url))).toMatchObject({
    level: 'fault',
    seen: expect.stringContaining('certificate'),
  });
});
