# The JSON web tokens by which users are known after their login.
class UserToken
  ALGORITHM = "HS256".freeze

  class << self
    def issue(user)
      JWT.encode({ user_id: user.id, exp: 24.hours.from_now.to_i }, key, ALGORITHM)
    end

    # The user's id, or nil for a token that is missing, invalid or expired.
    def user_id(token)
      JWT.decode(token, key, true, algorithm: ALGORITHM).first["user_id"]
    rescue JWT::DecodeError
      nil
    end

    private

    def key
      Rails.application.secret_key_base
    end
  end
end
