// What the static memlog of the tarball has beside the objects of memlog.
//
// Debian has no static libfmt: its functions are compiled from its headers. And a static program
// must not load libraries of the system it runs on, which may have another libc: libdw would load
// libdebuginfod, and libc what /etc/nsswitch.conf names for a user.
#include <fmt/format-inl.h>
#include <pwd.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template std::locale locale_ref::get<std::locale>() const;
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;

}  // namespace detail
FMT_END_NAMESPACE

extern "C" {
void* dlopen(const char*, int) noexcept { return nullptr; }
passwd* getpwuid(uid_t) { return nullptr; }
passwd* getpwent() { return nullptr; }
void setpwent() {}
void endpwent() {}
int getpwuid_r(uid_t, passwd*, char*, size_t, passwd** found) {
  *found = nullptr;
  return 0;
}
int getpwnam_r(const char*, passwd*, char*, size_t, passwd** found) {
  *found = nullptr;
  return 0;
}
}
