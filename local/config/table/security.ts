import { oneOf, path, text } from '../kinds.ts';
import { option, optional } from '../option.ts';

const onReload = { isReloadable: true };
const password = text('PASSWORD', { mayBeEmpty: true });

/** Options of section 2.6. A reload takes the files up again, also under the same names. */
export const certificates = {
  CertificateFile: optional(path('FILE'), 'Certificate of the node: a bundle in PKCS#12, or PEM or DER with the key in a file of its own', onReload),
  CertificatePrivateKeyFile: optional(path('FILE'), 'Private key of the certificate in PEM', onReload),
  CertificatePassword: optional(password, 'Password of a certificate in PKCS#12', { ...onReload, isSensitive: true }),
  CertificatePrivateKeyPassword: optional(password, 'Password of an encrypted private key', { ...onReload, isSensitive: true }),
  TrustedRootCertificatesPath: option(path('DIR'), '/etc/ssl/certs', 'Directory of the root certificates that are trusted', onReload),
  CertificateReservedNodeCommonName: optional(text('NAME', { mayBeEmpty: true }), 'Common name in the certificates of nodes, also with a wildcard such as *.example.test', { ...onReload, fallbackText: 'that of its own certificate' }),
};

const FIRST_START = 'counts at the first start on a directory only';

/** Options of section 2.7. */
export const users = {
  DefaultAdminPassword: option(password, 'changeit', `Password with which the user admin is created; ${FIRST_START}`, { isSensitive: true, isEnvironmentOnly: true }),
  DefaultOpsPassword: option(password, 'changeit', `Password with which the user ops is created; ${FIRST_START}`, { isSensitive: true, isEnvironmentOnly: true }),
  PasswordFormat: option(oneOf('FORMAT', ['strong', 'compatible']), 'strong', 'How new passwords are stored: strong (scrypt), or compatible with the reference database (PBKDF2). Both kinds are accepted'),
};
