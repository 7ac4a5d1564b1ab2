# Carries TCP connections of this network namespace over standard input and output, as frames:
#   type (1 byte), connection (4 bytes, big-endian), length (4 bytes, big-endian), content
# L: listening, up. O: a connection was opened, up. D: data. E: no more data from this side. R: the connection
# is gone. W: so many bytes were delivered (a number of 4 bytes): the sender may send as many more.
# Ends with its standard input.
use strict;
use warnings;
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_REUSEADDR IPPROTO_TCP TCP_NODELAY INADDR_LOOPBACK sockaddr_in);
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use Errno qw(EAGAIN EWOULDBLOCK EINTR);
my ($port, $window, $most) = @ARGV;
my $piece = 65536;
my ($in, $out, $last, %open) = ('', '', 0);
$SIG{PIPE} = 'IGNORE';
binmode STDIN;
binmode STDOUT;

sub unblock { fcntl($_[0], F_SETFL, fcntl($_[0], F_GETFL, 0) | O_NONBLOCK) or die "fcntl: $!" }
sub frame { my ($type, $id, $content) = @_; $out .= pack('aNN', $type, $id, length $content) . $content }
sub not_now { $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR }

sub gone {
    my ($id) = @_;
    frame('R', $id, '');
    close((delete $open{$id})->{socket});
}

sub finished {
    my ($id) = @_;
    my $each = $open{$id} or return;
    if ($each->{ends} && !length $each->{out} && !$each->{shut}) {
        shutdown($each->{socket}, 1);
        $each->{shut} = 1;
    }
    close((delete $open{$id})->{socket}) if $each->{shut} && !$each->{reads};
}

sub accepted {
    accept(my $socket, $_[0]) or return;
    unblock($socket);
    setsockopt($socket, IPPROTO_TCP, TCP_NODELAY, 1);
    $last++;
    $open{$last} = {socket => $socket, out => '', reads => 1, credit => $window, ends => 0, shut => 0};
    frame('O', $last, '');
}

sub taken {
    my ($type, $id, $content) = @_;
    my $each = $open{$id} or return;
    if    ($type eq 'D') { $each->{out} .= $content }
    elsif ($type eq 'W') { $each->{credit} += unpack('N', $content) }
    elsif ($type eq 'E') { $each->{ends} = 1; finished($id) }
    elsif ($type eq 'R') { close((delete $open{$id})->{socket}) }
}

sub heard {
    my $got = sysread(STDIN, $in, $piece, length $in);
    return if !defined $got && not_now();
    exit 0 if !$got;
    while (length $in >= 9) {
        my ($type, $id, $length) = unpack('aNN', $in);
        last if length $in < 9 + $length;
        my $content = substr($in, 9, $length);
        substr($in, 0, 9 + $length, '');
        taken($type, $id, $content);
    }
}

sub from_agent {
    my ($id) = @_;
    my $each = $open{$id};
    my $got = sysread($each->{socket}, my $content, $each->{credit} < $piece ? $each->{credit} : $piece);
    if (!defined $got) { gone($id) unless not_now(); return }
    if (!$got) { $each->{reads} = 0; frame('E', $id, ''); finished($id); return }
    $each->{credit} -= $got;
    frame('D', $id, $content);
}

sub to_agent {
    my ($id) = @_;
    my $each = $open{$id};
    my $put = syswrite($each->{socket}, $each->{out});
    if (!defined $put) { gone($id) unless not_now(); return }
    substr($each->{out}, 0, $put, '');
    frame('W', $id, pack('N', $put));
    finished($id);
}

socket(my $listener, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
setsockopt($listener, SOL_SOCKET, SO_REUSEADDR, 1);
bind($listener, sockaddr_in($port, INADDR_LOOPBACK)) or die "bind: $!";
listen($listener, 128) or die "listen: $!";
unblock($_) for $listener, \*STDIN, \*STDOUT;
frame('L', 0, '');

while (1) {
    my ($read, $write) = ('', '');
    my $calm = length $out < 16 * $piece;
    vec($read, fileno(STDIN), 1) = 1;
    vec($write, fileno(STDOUT), 1) = 1 if length $out;
    vec($read, fileno($listener), 1) = 1 if $calm && keys %open < $most;
    for my $each (values %open) {
        vec($read, fileno($each->{socket}), 1) = 1 if $calm && $each->{reads} && $each->{credit} > 0;
        vec($write, fileno($each->{socket}), 1) = 1 if length $each->{out};
    }
    next if select($read, $write, undef, undef) < 0;
    my @ready = map { [$_, fileno($open{$_}{socket})] } keys %open;
    if (vec($write, fileno(STDOUT), 1)) {
        my $put = syswrite(STDOUT, $out, 16 * $piece);
        if (defined $put) { substr($out, 0, $put, '') } else { exit 0 unless not_now() }
    }
    for (@ready) {
        my ($id, $file) = @$_;
        to_agent($id) if vec($write, $file, 1);
        from_agent($id) if vec($read, $file, 1) && $open{$id};
    }
    heard() if vec($read, fileno(STDIN), 1);
    accepted($listener) if vec($read, fileno($listener), 1);
}
