/** interface 2.2. Whether a branch is one of them is checked by identity, because an unknown one is answered with 404 (interface 7). */
export const branches = ['real-estate', 'facilities', 'handyman', 'sports-and-leisure', 'misc'] as const;
