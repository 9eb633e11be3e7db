/** Groups that mean something to the node. */
export const KNOWN_GROUPS: readonly { readonly name: string; readonly about: string }[] = [
  { name: '$admins', about: 'May do everything.' },
  { name: '$ops', about: "May operate the node: scavenges, backups, connectors and so on, but can't see users." },
  { name: '$backup', about: 'May read the files of the node, for backups made from outside.' },
];

export function userPath(login: string, command = ''): string {
  return `/users/${encodeURIComponent(login)}${command === '' ? '' : `/command/${command}`}`;
}

/** Names of groups between commas, or at the ends of lines. */
export function groupsOf(text: string): string[] {
  return [
    ...new Set(
      text
        .split(/[,\n]/)
        .map((group) => group.trim())
        .filter((group) => group !== ''),
    ),
  ];
}

const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';
const PASSWORD_LENGTH = 20;

/** A password that can't be guessed, without letters that look alike. */
export function newPassword(): string {
  let text = '';
  while (text.length < PASSWORD_LENGTH) {
    for (const byte of crypto.getRandomValues(new Uint8Array(PASSWORD_LENGTH))) {
      // Those beyond the last whole multiple would make the first letters likelier.
      if (byte < 256 - (256 % ALPHABET.length) && text.length < PASSWORD_LENGTH)
        text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}
