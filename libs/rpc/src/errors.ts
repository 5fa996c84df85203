import { Metadata, type ServiceError, status as Status, type StatusObject } from '@grpc/grpc-js';
import type { Rejection } from '@scheduling/contracts/rpc/v1';
import { type DomainCategory, DomainError, type ErrorCode } from '@scheduling/errors';

/** Metadata key for the rest of a DomainError; the status and the message are gRPC's own. */
const detailsKey = 'domain-error-bin';

type Details = Pick<DomainError, 'code' | 'errors' | 'reason' | 'retryAfterSeconds'>;

const statusOf: Record<DomainCategory, Status> = {
  invalid: Status.INVALID_ARGUMENT,
  unauthenticated: Status.UNAUTHENTICATED,
  forbidden: Status.PERMISSION_DENIED,
  not_found: Status.NOT_FOUND,
  conflict: Status.FAILED_PRECONDITION,
  gone: Status.OUT_OF_RANGE,
  unprocessable: Status.ALREADY_EXISTS,
  limited: Status.RESOURCE_EXHAUSTED,
  unavailable: Status.UNAVAILABLE,
};

const categories = new Map(Object.entries(statusOf).map(([category, status]) => [status, category as DomainCategory]));

/** The only place where a domain error becomes a gRPC status. */
export function toStatus(error: DomainError): StatusObject {
  const metadata = new Metadata();
  const { code, errors, reason, retryAfterSeconds } = error;
  metadata.set(detailsKey, Buffer.from(JSON.stringify({ code, errors, reason, retryAfterSeconds } satisfies Details)));
  return { code: statusOf[error.category], details: error.message, metadata };
}

/** A status as the outcome of one of several calls. */
export function toRejection({ code, details, metadata }: StatusObject): Rejection {
  return { code, details, domainError: metadata.get(detailsKey)[0] as Buffer | undefined };
}

/** The error that grpc-js would have reported for a gRPC call with this status. */
export function toServiceError({ code, details, domainError }: Rejection): ServiceError {
  const metadata = new Metadata();
  if (domainError !== undefined) metadata.set(detailsKey, domainError);
  const name = Status[code] as keyof typeof Status;
  return Object.assign(new Error(`${code} ${name}: ${details}`), { code: Status[name], details, metadata });
}

const internalDetails = 'internal error';

/** An unknown error: no details are sent to the caller. */
export function internalStatus(): StatusObject {
  return { code: Status.INTERNAL, details: internalDetails, metadata: new Metadata() };
}

/**
 * The only place where a gRPC status becomes a domain error. An error that is not ours means that the service is
 * unavailable, or is returned unchanged.
 */
export function fromServiceError(error: ServiceError, service: string): Error {
  const category = categories.get(error.code);
  const details = error.metadata?.get(detailsKey)[0];
  if (category !== undefined && details !== undefined) {
    const { code, ...others } = JSON.parse(details.toString()) as Details;
    return new DomainError(code as ErrorCode, { category, text: error.details, ...others, cause: error });
  }
  switch (error.code) {
    case Status.UNAVAILABLE:
    case Status.DEADLINE_EXCEEDED:
    case Status.CANCELLED:
    case Status.RESOURCE_EXHAUSTED:
    // Another service, or an older version: the caller and the service find each other again.
    case Status.UNIMPLEMENTED:
      return unanswered(error, service);
    case Status.INTERNAL:
      // Not a response of the service, but the end of the connection: Node closes one on which very many calls were
      // cancelled in a short time.
      return error.details === internalDetails ? error : unanswered(error, service);
    default:
      return error;
  }
}

/** Whether a call failed because its method does not exist at the address. */
export function isUnimplemented(error: unknown): boolean {
  return (
    error instanceof DomainError && (error.cause as Partial<ServiceError> | undefined)?.code === Status.UNIMPLEMENTED
  );
}

function unanswered(error: ServiceError, service: string): DomainError {
  return new DomainError('service.unavailable', { text: `the ${service} service does not answer`, cause: error });
}
