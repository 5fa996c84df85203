import { path } from './client.ts';
import { personMark } from './customers.ts';
import type { User } from './model.ts';
import type { Worker } from './worker.ts';

export async function createUser(worker: Worker): Promise<void> {
  const { provider, journal, random } = worker;
  const { tenant } = provider;
  const reference = tenant.newReference('user');
  const operation = journal.begin('create user');
  const mark = personMark(tenant.mark, reference);
  const name = `${mark} 0`;
  const user: User = {
    tenant,
    reference,
    email: `${mark}@${tenant.mark.toLowerCase()}.example`,
    created: operation,
    names: [{ name, operation }],
    verification: undefined,
    deleted: undefined,
  };
  tenant.users.push(user);
  const body = { reference, email: user.email, username: mark, lastName: name };
  await tenant.client.change(operation, { method: 'POST', path: '/user', body }, { withKey: random.chance(0.3) });
  if (operation.outcome === 'ok') worker.users.push(user);
}

export async function renameUser(worker: Worker): Promise<void> {
  if (worker.users.length === 0) return createUser(worker);
  const { tenant, reference, names } = worker.random.pick(worker.users);
  const operation = worker.journal.begin('change user');
  const name = `${personMark(tenant.mark, reference)} ${names.length}`;
  names.push({ name, operation });
  await tenant.client.change(operation, { method: 'PUT', path: path`/user/${reference}`, body: { lastName: name } });
}

/**
 * Once for each user: there is a limit to such mails. Only the Idempotency-Key keeps a repetition from being refused
 * because of it.
 */
export async function verifyUser(worker: Worker): Promise<void> {
  const user = worker.users.find(({ verification }) => verification === undefined);
  if (user === undefined) return createUser(worker);
  user.verification = worker.journal.begin('verify user');
  const request = { method: 'POST', path: path`/user/${user.reference}/verification` } as const;
  await user.tenant.client.change(user.verification, request, { withKey: true });
}

export async function deleteUser(worker: Worker): Promise<void> {
  if (worker.users.length < 3) return createUser(worker);
  const user = worker.random.pick(worker.users);
  worker.users = worker.users.filter((each) => each !== user);
  user.deleted = worker.journal.begin('delete user');
  await user.tenant.client.change(
    user.deleted,
    { method: 'DELETE', path: path`/user/${user.reference}` },
    { goneStatus: 404 },
  );
}
