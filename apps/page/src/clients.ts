import {
  BookingPageServiceService,
  DecisionServiceService,
  PersonServiceService,
} from '@scheduling/contracts/calendar/v1';
import { PublicProviderServiceService } from '@scheduling/contracts/identity/v1';
import { type ClientOptions, createClient, type RpcClient } from '@scheduling/rpc';

/** The services behind the pages, which have no data of their own. */
export interface Clients extends Disposable {
  persons: RpcClient<PersonServiceService>;
  decisions: RpcClient<DecisionServiceService>;
  bookingPages: RpcClient<BookingPageServiceService>;
  providers: RpcClient<PublicProviderServiceService>;
}

export interface ClientAddresses {
  calendarAddress: string;
  identityAddress: string;
}

export function createClients(addresses: ClientAddresses, options: ClientOptions): Clients {
  const stack = new DisposableStack();
  return {
    persons: stack.use(createClient(PersonServiceService, 'calendar', addresses.calendarAddress, options)),
    decisions: stack.use(createClient(DecisionServiceService, 'calendar', addresses.calendarAddress, options)),
    bookingPages: stack.use(createClient(BookingPageServiceService, 'calendar', addresses.calendarAddress, options)),
    providers: stack.use(createClient(PublicProviderServiceService, 'identity', addresses.identityAddress, options)),
    [Symbol.dispose]: () => stack.dispose(),
  };
}
