import { beforeAll, describe, expect, inject, it } from 'vitest';
import { path } from '@scheduling/test-stack/client';
import { createAppointment, createCrm, createPractice, type Practice, unique } from '@scheduling/test-stack/crm';

interface Made {
  calendar: { reference: string; details: string; url?: string };
}

let practice: Practice;
beforeAll(async () => {
  practice = await createPractice(await createCrm({ sandbox: true, language: 'en' }));
});

async function subscribe(fields: object = {}): Promise<{ at: string; url: string }> {
  const reference = `${unique('calendar')}@test`;
  const { status, body } = await practice.crm.post<Made>(`${practice.at}/calendars`, { reference, ...fields });
  expect(status).toBe(201);
  return { at: `${practice.at}${path`/calendars/${reference}`}`, url: body.calendar.url! };
}

describe('a calendar (interface 12)', () => {
  it('is read at its URL, which is shown once, replaced, and dead once it is deleted', async () => {
    await practice.crm.put('/sandbox/clock', { now: '2031-01-01T00:00:00Z' });
    await createAppointment(practice);
    const { at, url } = await subscribe();
    expect(url).toMatch(new RegExp(`^${RegExp.escape(inject('stack').page)}/calendar/[\\w-]{43}\\.ics$`));
    const answer = await fetch(url);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/calendar; charset=utf-8']);
    expect((await answer.text()).split('BEGIN:VEVENT')).toHaveLength(2);
    expect((await practice.crm.get(`${practice.at}/calendars`)).text).not.toContain('.ics');

    const { status, body } = await practice.crm.post<Made>(`${at}/secret`, undefined);
    expect(status).toBe(200);
    expect((await fetch(url)).status).toBe(404);
    expect((await fetch(body.calendar.url!)).status).toBe(200);
    expect((await practice.crm.delete(at)).status).toBe(204);
    expect((await fetch(body.calendar.url!)).status).toBe(404);
    expect(await practice.crm.delete(at)).toMatchObject({ status: 404, body: { code: 'calendar.not_found' } });
  });

  it('tells nothing of those who take part unless it is asked for', async () => {
    const reference = `${unique('calendar')}@test`;
    for (const [status, details] of [
      [201, undefined],
      [200, null],
      [200, 'NONE'],
      [409, 'NAMES'],
    ] as const) {
      const answer = await practice.crm.post<Made>(`${practice.at}/calendars`, { reference, details });
      expect(answer.status, answer.text).toBe(status);
      if (status !== 409) expect(answer.body.calendar.details).toBe('NONE');
      if (status === 200) expect(answer.body.calendar).not.toHaveProperty('url');
    }
  });
});
