import { DomainError } from '@scheduling/runtime';
import { createHash } from 'node:crypto';

export function verificationNotFound(): DomainError {
  return DomainError.notFound('verification.not_found', 'This verification link is not known, or a newer one has replaced it.');
}

export function verificationUsed(): DomainError {
  return DomainError.notFound('verification.used', 'This verification link has been used already.');
}

export function verificationExpired(): DomainError {
  return DomainError.notFound('verification.expired', 'This verification link has expired.');
}

export function verificationLimited(retryAfterSeconds: number): DomainError {
  return DomainError.limited('verification.limited', 'At most one verification mail a minute and five in 24 hours are sent to a user.', retryAfterSeconds);
}

export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
