import type { Customer } from '@scheduling/contracts/customer/v1';
import { undefinedIfNotFound } from '@scheduling/errors';
import { within } from '@scheduling/runtime';
import type { ProviderKey } from '@scheduling/service';
import type { CalendarDependencies } from '../dependencies.ts';
import { type NamedCustomer, provideCustomer, settleCustomer } from './customer-copy.ts';
import { excludeCustomer } from './exclude-customer.ts';

/** The response does not wait any longer for the customer service to know how the booking ended. */
const endMs = 500;

/**
 * What a request to book has had the customer service prepare. Its disposal says whether the booking was made. If that
 * fails, or the process ends before, the customer service asks (`getBooked`, `excludeCustomer`), and so does calendar,
 * for the copy that is stored with a booking (start-copy-refresher.ts).
 */
export class Preparation implements AsyncDisposable {
  /** The provisional customer, once one was necessary. */
  customer: Customer | undefined;
  readonly #dependencies: CalendarDependencies;
  readonly #provider: ProviderKey;

  constructor(dependencies: CalendarDependencies, provider: ProviderKey) {
    this.#dependencies = dependencies;
    this.#provider = provider;
  }

  /**
   * Provides the customer whom an attempt did not find. Somebody else has decided about the one that was prepared
   * before, and may have ended before the customer service knew. Rejects with `customer.not_found`.
   */
  async provide(named: NamedCustomer): Promise<void> {
    if (this.customer !== undefined) await this.#end(this.customer);
    this.customer = await provideCustomer(this.#dependencies, this.#provider, named);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.customer === undefined) return;
    await within(this.#end(this.customer), endMs).catch(() => undefined);
  }

  /** Others may have booked for the customer, too, who may have been deleted since. */
  async #end({ id }: Customer): Promise<void> {
    const { crmId } = this.#provider;
    const isExcluded = await excludeCustomer(this.#dependencies, { crmId, customerId: id });
    if (isExcluded) await this.#dependencies.customers.dropCustomer({ crmId, id });
    else await undefinedIfNotFound(settleCustomer(this.#dependencies, { crmId, customerId: id }));
  }
}

/** What add_prepared_customer needs. */
export function preparedContent({ id, userName, email, mobile, language }: Customer) {
  return { id, userName, email, mobile, language };
}
