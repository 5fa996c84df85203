/** Lines of business of accounts and providers (interface 2.2). */
export const branches = ['real-estate', 'facilities', 'handyman', 'sports-and-leisure', 'misc'] as const;
