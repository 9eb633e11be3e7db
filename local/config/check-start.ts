import { BlockList } from 'node:net';
import { tlsModeOf } from './check-config.ts';
import type { Config } from './config.ts';
import { ConfigError } from './config-error.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether only this machine reaches the address. IPv4 addresses in IPv6 clothing count as what they are. */
export function isLoopback(address: string): boolean {
  return loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}

/** With TLS on a node needs a certificate. To be called before the store is opened; throws a ConfigError. */
export function checkTls({ values, spelling }: Config): void {
  if (tlsModeOf(values) !== 'certificates') return;
  if (values.CertificateFile !== null) return;
  const keyAlone = values.CertificatePrivateKeyFile === null ? '' : ` ${spelling('CertificatePrivateKeyFile')} is only its key.`;
  throw new ConfigError([
    `TLS is on, and that needs a certificate: give one with --certificate-file.${keyAlone} `
    + 'Or choose --dev (a self-signed one, for this machine), --disable-tls (no TLS, users and passwords stay), or --insecure (neither).',
  ]);
}

/**
 * Default passwords are known to everybody: a node that has them stays on its own machine unless told otherwise. To
 * be called when the users are known and before the node listens; throws a ConfigError.
 */
export function checkStart(config: Config, { hasDefaultPasswords }: { readonly hasDefaultPasswords: boolean }): void {
  checkTls(config);
  const { values, spelling } = config;
  if (!hasDefaultPasswords || values.Insecure || values.AllowDefaultPasswords || isLoopback(values.NodeIp)) return;
  throw new ConfigError([
    `${spelling('NodeIp')} ${values.NodeIp} can be reached from other machines, and the user admin or ops still has the default password. `
    + 'Start on 127.0.0.1 and change the passwords, or set SERVER_DEFAULT_ADMIN_PASSWORD and SERVER_DEFAULT_OPS_PASSWORD before the first start on a directory, or allow it with --allow-default-passwords.',
  ]);
}
