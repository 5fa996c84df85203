import { GetErasureNoticeResponse } from '@scheduling/contracts/customer/v1';
import { DomainError } from '@scheduling/errors';
import type { CustomerDependencies } from '../customer/customer.ts';
import { noticeExpiry } from './delete-customer.ts';

/** What the last mail to a deleted person needs. Rejects with `erasure.not_found` once it is no longer due. */
export async function getErasureNotice(
  { database }: CustomerDependencies,
  { crmId, erasureId }: { crmId: string; erasureId: string },
): Promise<GetErasureNoticeResponse> {
  const erasure = await database.kysely
    .selectFrom('erasure')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('id', '=', erasureId)
    .executeTakeFirst();
  if (erasure === undefined || erasure.notice === null) {
    throw new DomainError('erasure.not_found');
  }
  return { ...GetErasureNoticeResponse.decode(erasure.notice), expiresAt: noticeExpiry(erasure) };
}
